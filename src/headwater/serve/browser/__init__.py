"""The browser client: one ES module, served as it is at ``/client/headwater.js``."""

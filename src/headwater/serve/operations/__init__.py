"""Routes for those who operate a pipeline: nodes and their figures, rebuilds, proofs, dead letters."""

from headwater.serve.operations import actions, monitors, nodes, notifications, pipelines, topic_figures

ROUTES = (
    *pipelines.ROUTES,
    *nodes.ROUTES,
    *topic_figures.ROUTES,
    *monitors.ROUTES,
    *actions.ROUTES,
    *notifications.ROUTES,
)

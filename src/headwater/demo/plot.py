"""What happens in the demo, and when: a member is killed, the producers stop, everyone catches up.

Invariant: each step is taken once, in this order, whatever the machine's speed.
"""

from __future__ import annotations

from headwater.demo.actors import GROUPS, PARTITIONS, ROLES
from headwater.demo.play import Play, Scene
from headwater.demo.screen import Screen

WRITING, KILLING = 0.6, 0.3
"""Parts of the time: how long is written, and when the member is killed. The rest is catching up."""
VICTIM, HEIR = 0, 1
"""Two members of one group."""
EXTRA_SECONDS = 60.0
"""How much longer than planned catching up may take, on a busy machine."""


class Plot:
    """Takes the next step when its time has come."""

    def __init__(self, play: Play, screen: Screen, seconds: float):
        self._play, self._screen, self._seconds = play, screen, seconds
        self._killed = 0.0
        self._taken_over = False
        self._stopped = False

    def advance(self, scene: Scene) -> bool:
        """Do what is due at this scene; tell whether that was the end."""
        elapsed = scene.at - self._screen.started
        if not self._killed:
            if elapsed > KILLING * self._seconds:
                self._kill(scene)
        elif not self._taken_over:
            self._notice_takeover(scene)
        if self._stopped:
            return _caught_up(scene) or elapsed > self._seconds + EXTRA_SECONDS
        if elapsed > WRITING * self._seconds:
            self._stop_writing(scene)
        return False

    def _kill(self, scene: Scene) -> None:
        self._play.kill(VICTIM)
        self._killed = scene.at
        owned = ", ".join(map(str, scene.owned[VICTIM])) or "none"
        self._screen.tell(scene.at, f"kill -9 {ROLES[VICTIM].name}, which had partitions {owned}")

    def _notice_takeover(self, scene: Scene) -> None:
        if len(scene.owned[HEIR]) == PARTITIONS:
            self._taken_over = True
            after = f"within {scene.at - self._killed:.1f} s"
            self._screen.tell(scene.at, f"{ROLES[HEIR].name} has taken over {after}")

    def _stop_writing(self, scene: Scene) -> None:
        self._play.stop_writing()
        self._stopped = True
        left = sum(lag.records for lag in scene.lag[GROUPS[-1]])
        self._screen.tell(scene.at, f"producers stop; {GROUPS[-1]} has {left:,} rows to catch up")


def _caught_up(scene: Scene) -> bool:
    return all(lags and not any(lag.records for lag in lags) for lags in scene.lag.values())

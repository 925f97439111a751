"""An incident: what a seed hides in which job, and what each measurement then shows."""

import random
from dataclasses import dataclass
from functools import cached_property

from lightspeed.errors import meant
from lightspeed_course.incidents.engine import ENGINE
from lightspeed_course.incidents.serving import SERVING
from lightspeed_course.incidents.setting import Cause, Setting
from lightspeed_course.incidents.training import TRAINING
from lightspeed_course.incidents.week import WEEK

# What `incident` draws from. The week is asked for by its name: it would shift every draw.
CASES = tuple((one, cause) for one in (TRAINING, SERVING, ENGINE) for cause in one.single)
SECOND = 0.5  # of the causes that can have company, the share that has
SETTINGS = {setting.id: setting for setting in (TRAINING, SERVING, ENGINE, WEEK)}
# A fault that nobody would notice is none. As a share of the plan.
NOTICED = 0.92


class UnknownChoice(LookupError):
    """An unknown measurement, cause or fix of this incident."""


@dataclass(frozen=True)
class Incident:
    """An incident. `job` contains the fault and must stay hidden from the learner."""

    seed: str
    setting: Setting
    cause: Cause
    job: object

    @property
    def id(self):
        return id_of(self.seed, self.setting)

    @property
    def brief(self):
        return self.setting.brief(self.job)

    def _reading(self, measurement):
        # One stream each, so that a measurement shows the same whenever it is bought.
        rng = random.Random(f"{self.seed}\n{measurement.id}")
        return measurement.read(self.job, rng)

    def show(self, id):
        """Return what a measurement prints."""
        m = self.setting.measurement(id)
        return m.show(self.job, self._reading(m))

    @cached_property
    def findings(self):
        """Measurement id -> an expert's finding."""
        return {m.id: m.tell(self.job, self._reading(m)) for m in self.setting.measurements}

    @cached_property
    def gain(self):
        """How many times better the fix makes the job, by simulation."""
        pace = self.setting.pace
        return pace(self.cause.mend(self.job)) / pace(self.job)

    def write(self, ids, folder):
        """Write the files of these measurements, if they have any, into a folder."""
        purchases = [self.setting.measurement(id) for id in ids]
        widest = [m for m in purchases if m.write][-1:]  # that of all ranks has that of rank 0
        return [path for m in widest for path in m.write(self.job, folder)]

    def minutes(self, ids):
        return sum(self.setting.measurement(id).price for id in ids)

    def named(self, what, id):
        """Return the measurement or cause with this id. Raises UnknownChoice."""
        ids = [m.id for m in (getattr(self.setting, what))]
        if id not in ids:
            kind = {"measurements": "measurement", "causes": "cause"}[what]
            raise UnknownChoice(f"there is no {kind} {id!r}; {meant(str(id), ids)}")
        return id


def id_of(seed, setting=None):
    """Return the stored id of a seed's incident; the week's incidents are numbered separately."""
    return f"{'week' if setting is WEEK else 'incident'}.{seed}"


def _with_company(seed, setting, cause):
    """The cause, or a pair that it is of: by a draw of its own, which shifts no other."""
    pairs = [pair for pair in setting.causes if cause in pair.parts]
    return pairs[0] if pairs and random.Random(f"pair\n{seed}").random() < SECOND else cause


def incident_of(seed, setting=None, cause=None):
    """Return the `Incident` of a seed; setting and cause are drawn too unless given."""
    rng = random.Random(f"incident\n{seed}")
    if setting is None:
        setting, cause = rng.choice(CASES)
        cause = _with_company(seed, setting, cause)
    elif cause is None:
        cause = rng.choice(setting.causes)
    for _ in range(500):
        job = cause.damage(rng, setting.plan(rng))
        jobs = (job, *(part.mend(job) for part in cause.parts))
        if all(setting.rate(each) < NOTICED for each in jobs):
            return Incident(str(seed), setting, cause, job)
    raise ValueError(f"incident {seed}: 500 draws of {cause.id} and nobody would notice one")

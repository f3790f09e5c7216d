"""The rules, one file a family of causes."""

from cgotel.restarts.rules.ending import RULES as ENDING
from cgotel.restarts.rules.gpu import RULES as GPU
from cgotel.restarts.rules.memory import RULES as MEMORY
from cgotel.restarts.rules.probes import RULES as PROBES
from cgotel.restarts.rules.supervisor import RULES as SUPERVISOR

RULES = (*MEMORY, *GPU, *PROBES, *SUPERVISOR, *ENDING)

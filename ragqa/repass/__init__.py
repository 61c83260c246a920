"""RePASs: source sentences, NLI, obligations, the formulas, and the scorer that streams them."""

import os

# Threads that wait for each other inside torch sleep instead of spinning. Spinning wins nothing where a web server and
# other sessions share the cores: with two cores and one other busy process, 80 pairs took 6 s spinning and 1.5 s
# sleeping. It must be set before torch is loaded; a value that the user has set is kept.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

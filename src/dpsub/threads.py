"""One thread a process for the numerical libraries, because jobs and test workers run in parallel.

To be put into the environment before numpy is imported, which reads it once.
"""

ONE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

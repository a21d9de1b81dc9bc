"""One thread a process for the libraries that compute: jobs and test workers are what runs in
parallel.

To be put into the environment before numpy is imported, which reads it once.
"""

ONE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

"""Studies of samplers and schedules at one proved privacy: cells, noise, tasks, trainings and
contests, each once for all studies; it names no study."""

// Durations and repetitions of measurements.

export type Pace = {
  readonly rounds: number;
  // Seconds at full speed, at a steady rate, and of warm-up.
  readonly seconds: number;
  readonly steadySeconds: number;
  readonly warmSeconds: number;
  // Additional warm-up of a program that has just been started and is compiled while it runs.
  readonly startSeconds: number;
  // For the neighbour of the fairness benchmark, which sends few queries.
  readonly neighbourSeconds: number;
};

export const FULL_PACE: Pace = {
  rounds: 5,
  seconds: 0.7,
  steadySeconds: 0.3,
  warmSeconds: 0.3,
  startSeconds: 1,
  neighbourSeconds: 1.5,
};

// To check that everything works.
export const QUICK_PACE: Pace = {
  rounds: 1,
  seconds: 0.3,
  steadySeconds: 0.2,
  warmSeconds: 0.2,
  startSeconds: 0.3,
  neighbourSeconds: 0.5,
};

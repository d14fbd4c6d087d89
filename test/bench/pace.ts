// Owns how long is measured, and how often.

export type Pace = {
  readonly rounds: number;
  // At full speed, at a steady rate, and before both.
  readonly seconds: number;
  readonly steadySeconds: number;
  readonly warmSeconds: number;
  // Before that where a program has just been started whose code is compiled as it runs.
  readonly startSeconds: number;
  // For a neighbour, who asks seldom.
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

// To see that everything works.
export const QUICK_PACE: Pace = {
  rounds: 1,
  seconds: 0.3,
  steadySeconds: 0.2,
  warmSeconds: 0.2,
  startSeconds: 0.3,
  neighbourSeconds: 0.5,
};

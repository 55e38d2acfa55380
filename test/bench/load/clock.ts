/** The system's clock with microseconds, which the processes of one machine share. */
export const clockMs = (): number => performance.timeOrigin + performance.now();

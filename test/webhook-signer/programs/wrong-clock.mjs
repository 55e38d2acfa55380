/** Loaded before a program: its clock is wrong by WRONG_CLOCK_MS. The monotonic clock is right. */
const wrongByMs = Number(process.env.WRONG_CLOCK_MS);
const RightDate = Date;
globalThis.Date = class extends RightDate {
  constructor(...given) {
    if (given.length === 0) super(RightDate.now() + wrongByMs);
    else super(...given);
  }
  static now() {
    return RightDate.now() + wrongByMs;
  }
};

/** Loaded before a program: at SIGUSR2 its clock is set an hour ahead, at the next one an hour back, then right again. */
const HOUR_MS = 3_600_000;
const shiftsMs = [0, HOUR_MS, -HOUR_MS];
let set = 0;
const RightDate = Date;
const nowMs = () => RightDate.now() + shiftsMs[set];
globalThis.Date = class extends RightDate {
  constructor(...given) {
    if (given.length === 0) super(nowMs());
    else super(...given);
  }
  static now() {
    return nowMs();
  }
};
process.on("SIGUSR2", () => {
  set = (set + 1) % shiftsMs.length;
});

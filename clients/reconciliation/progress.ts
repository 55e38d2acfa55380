/** A progress bar on standard error: on a terminal one line that changes, elsewhere a line for each tenth. */
const WIDTH = 30;
const STEPS_ELSEWHERE = 10;

export interface Progress {
  update(done: number, total: number): void;
  /** Ends the line. */
  end(): void;
}

export function createProgress(what: string, stream: NodeJS.WriteStream = process.stderr): Progress {
  let shown = -1;
  return {
    update(done, total) {
      const share = total === 0 ? 1 : Math.min(1, done / total);
      const steps = stream.isTTY ? 100 : STEPS_ELSEWHERE;
      const step = Math.floor(share * steps);
      if (step <= shown) return;
      shown = step;
      const filled = Math.round(share * WIDTH);
      const percent = String(Math.floor((step * 100) / steps)).padStart(3);
      const line = `${what} [${"#".repeat(filled)}${".".repeat(WIDTH - filled)}] ${percent} %`;
      stream.write(stream.isTTY ? `\r${line}` : `${line}\n`);
    },
    end() {
      if (stream.isTTY && shown >= 0) stream.write("\n");
    },
  };
}

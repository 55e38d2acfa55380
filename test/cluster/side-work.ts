/** Work during a trial that belongs to no station. */
export interface SideWork {
  /** Works until `stop`; resolves when the current work is complete. */
  run(): Promise<void>;
  stop(): void;
  /** After `run`: a sentence for each acknowledged step that has not had its effect, and one line about what was done. */
  judge(): Promise<{ readonly sentences: readonly string[]; readonly summary: string }>;
}

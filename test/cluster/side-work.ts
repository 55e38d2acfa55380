/** Work during a trial that belongs to no station. */
export interface SideWork {
  /** Works until `stop`; resolves when what is under way is over. */
  run(): Promise<void>;
  stop(): void;
  /** After `run`: a sentence for each acknowledged step that has not had its effect, and one line about what was done. */
  judge(): Promise<{ readonly sentences: readonly string[]; readonly summary: string }>;
}

/** Answers that depend on nothing but the text asked about, kept for the next time: the same few targets are asked about for each delivery. */

/** Calls `answer` once for each text. With `most` texts all are forgotten, so that many targets cost time and not memory. */
export function remember<Answer>(most: number, answer: (text: string) => Answer): (text: string) => Answer {
  const known = new Map<string, Answer>();
  return (text) => {
    const found = known.get(text);
    if (found !== undefined) return found;
    if (known.size >= most) known.clear();
    const answered = answer(text);
    known.set(text, answered);
    return answered;
  };
}

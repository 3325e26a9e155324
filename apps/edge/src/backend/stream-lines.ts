// The lines of a body that comes over the link, one JSON object each, for as long as it goes on.

export interface ReadingLines {
  /** Of one line. */
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  /** Something came. */
  readonly onChunk?: () => void;
}

/** Ends when the body does; throws on a line that is too long. */
export async function* linesIn(
  body: ReadableStream<Uint8Array>,
  { maxBytes, signal, onChunk }: ReadingLines,
): AsyncGenerator<string> {
  const reader = body.getReader();
  // A body from this very process knows nothing of the signal.
  signal.addEventListener('abort', () => void reader.cancel().catch(() => undefined), { once: true });
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done || signal.aborted) return;
    onChunk?.();
    const lines = (rest + decoder.decode(value, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > maxBytes) throw new Error(`a line is longer than ${maxBytes} bytes`);
    yield* lines;
  }
}

// Splits a streamed response of the platform into lines, each with a JSON object, until the stream ends.

export interface ReadingLines {
  /** Maximum length of a line in the stream. */
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  /** Called when data of the stream has arrived. */
  readonly onChunk?: () => void;
}

/** Yields the lines of a body until the body ends. Throws if a line is too long. */
export async function* linesIn(
  body: ReadableStream<Uint8Array>,
  { maxBytes, signal, onChunk }: ReadingLines,
): AsyncGenerator<string> {
  const reader = body.getReader();
  // The reader is canceled explicitly, because a body created in the same process does not react to the signal.
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

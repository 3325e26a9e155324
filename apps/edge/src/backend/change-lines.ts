// One change a line: the stream of changes as values.
import { type EdgeChange, edgeChange } from '@tunnel/contract';

export interface ReadingChanges {
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  readonly onChunk: () => void;
}

/** Ends when the stream does; throws on a line that is too long. A line of a kind that is not known here is passed over. */
export async function* changesIn(
  body: ReadableStream<Uint8Array>,
  { maxBytes, signal, onChunk }: ReadingChanges,
): AsyncGenerator<EdgeChange> {
  const reader = body.getReader();
  // A body from this very process knows nothing of the signal.
  signal.addEventListener('abort', () => void reader.cancel().catch(() => undefined), { once: true });
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done || signal.aborted) return;
    onChunk();
    const lines = (rest + decoder.decode(value, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > maxBytes) throw new Error(`a line of changes is over ${maxBytes} bytes`);
    for (const line of lines) {
      const change = changeOf(line);
      if (change !== null) yield change;
    }
  }
}

const changeOf = (line: string): EdgeChange | null => {
  try {
    const parsed = edgeChange.safeParse(JSON.parse(line));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
};

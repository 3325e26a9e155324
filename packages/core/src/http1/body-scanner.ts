// Finds the end of a body in bytes that pass by, and says which of them to pass on. Keeps no body bytes.

/** The body goes on in the next piece. */
export const BODY_INCOMPLETE = -1;
/** The body is malformed: nothing after it can be trusted, so the connection ends. */
export const BODY_BAD = -2;

/** Both are called in the order of the body, and never after the end of `push`. */
export interface BodySink {
  /** `bytes[start, end)` of the piece that is being pushed. */
  forward(start: number, end: number): void;
  /** What takes the place of bytes that were left out; one character per byte. */
  text(piece: string): void;
}

export interface BodyScanner {
  /** Why it is bad, once `push` has said so. */
  readonly problem: string | null;
  /** The index after the body's last byte in `bytes[start, end)`, or one of the codes above. Not called again after either end. */
  push(bytes: Uint8Array, start: number, end: number, sink: BodySink): number;
}

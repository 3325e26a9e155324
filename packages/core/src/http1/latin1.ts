// Bytes as text, one character per byte, and back: for the few short pieces that are not handed over as text already.

/** Arguments of one call: the engine's own limit is some hundred thousand. */
const STEP = 4096;

export const latin1Text = (bytes: Uint8Array, start: number, end: number): string => {
  let text = '';
  for (let at = start; at < end; at += STEP) {
    text += String.fromCharCode(...bytes.subarray(at, Math.min(end, at + STEP)));
  }
  return text;
};

// Texts and colors for a captured request. Pure functions.
import type { CapturedRequest } from '@tunnel/contract';
import type { Tone } from '../../ui/badge.tsx';
import { latencyText } from '../../ui/format.ts';

export const statusTone = (status: number | null): Tone => {
  if (status === null) return 'neutral';
  if (status >= 500) return 'bad';
  if (status >= 400) return 'warn';
  return status >= 300 ? 'accent' : 'good';
};

export const statusText = ({ status, duration_ms, aborted }: CapturedRequest): string => {
  if (status !== null) return String(status);
  if (duration_ms === null && !aborted) return 'Pending';
  return 'No answer';
};

/** Returns the text about the result of a finished replay. */
export const replayedText = (request: CapturedRequest): string => {
  const { duration_ms: ms } = request;
  return `Replayed: ${statusText(request)}${ms === null ? '' : ` in ${latencyText(ms)}`}.`;
};

/** Returns a text about a problem with a request. Null if there was no problem. */
export const troubleText = ({ error, aborted, policy }: CapturedRequest): string | null => {
  // A response by a rule is shown with the rules instead.
  if ((policy?.answered_by ?? null) !== null) return null;
  if (error !== null) return `Answered or cut off by the edge: ${error}.`;
  return aborted ? 'The visitor disconnected early, or the response was cut off.' : null;
};

/** Returns the reason why a request cannot be replayed. Null if a replay is possible. */
export const noReplayText = ({ replayable, policy }: CapturedRequest, isLive: boolean): string | null => {
  if (!isLive) return "You can't replay this request because the tunnel has ended.";
  if ((policy?.answered_by ?? null) !== null) return "You can't replay this request because a rule answered it.";
  return replayable ? null : "You can't replay this request because the body was not stored completely.";
};

export interface BodyPreview {
  /** Text of the body. Null if there is no text to show; `note` then tells the reason. */
  readonly text: string | null;
  readonly note: string | null;
}

const KEPT_BYTES = 16 * 1024;

/** Returns the preview of a body. JSON is indented; a body that was cut off is shown unchanged. */
export const previewBody = (body: string | null, size: number, contentType: string | undefined): BodyPreview => {
  if (size === 0 && (body === null || body === '')) return { text: null, note: 'No body.' };
  if (body === null) return { text: null, note: 'No preview: the body is not text, or bodies are not stored.' };
  const note = size > KEPT_BYTES ? 'The first 16 KiB.' : null;
  const isJson = /\bjson\b/i.test(contentType ?? '') || /^\s*[{[]/.test(body);
  return { text: isJson ? laidOut(body) : body, note };
};

const laidOut = (text: string): string => {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
};

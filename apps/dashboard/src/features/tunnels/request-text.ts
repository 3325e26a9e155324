// The texts and tones of a captured request. Pure.
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

/** Of a replay that has come back. */
export const replayedText = (request: CapturedRequest): string => {
  const { duration_ms: ms } = request;
  return `Replayed: ${statusText(request)}${ms === null ? '' : ` in ${latencyText(ms)}`}.`;
};

/** What went beside the plan; null: nothing. */
export const troubleText = ({ error, aborted, policy }: CapturedRequest): string | null => {
  // It is told as what the rules did.
  if ((policy?.answered_by ?? null) !== null) return null;
  if (error !== null) return `Answered or cut off by the edge: ${error}.`;
  return aborted ? 'The visitor disconnected early, or the response was cut off.' : null;
};

/** Why it cannot be sent again; null: it can. */
export const noReplayText = ({ replayable, policy }: CapturedRequest, isLive: boolean): string | null => {
  if (!isLive) return "You can't replay this request because the tunnel has ended.";
  if ((policy?.answered_by ?? null) !== null) return "You can't replay this request because a rule answered it.";
  return replayable ? null : "You can't replay this request because the body was not stored completely.";
};

export interface BodyPreview {
  /** null: there is nothing to show, for the reason in `note`. */
  readonly text: string | null;
  readonly note: string | null;
}

const KEPT_BYTES = 16 * 1024;

/** JSON is laid out for reading. A body that was cut is shown as it came. */
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

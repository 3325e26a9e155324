// What an authority says went wrong (RFC 8555, 6.7), as an error that can be told apart.
import { z } from 'zod';

/** of an authority’s text that is quoted */
const DETAIL_SHOWN_CHARS = 500;

const URN = 'urn:ietf:params:acme:error:';

const PROBLEM = z.object({
  type: z.string().default(''),
  detail: z.string().default(''),
  status: z.number().optional(),
  subproblems: z
    .array(
      z.object({
        type: z.string().default(''),
        detail: z.string().default(''),
        identifier: z.object({ value: z.string() }).optional(),
      }),
    )
    .default([]),
});

export class AcmeProblem extends Error {
  /** Without the URN: `badNonce`, `rateLimited`, `unauthorized`; empty when the answer had none. */
  readonly type: string;
  readonly status: number;
  readonly detail: string;
  readonly retryAfterMs: number | null;

  constructor(fields: { type: string; status: number; detail: string; retryAfterMs: number | null }) {
    super(fields.detail === '' ? `${fields.type || 'error'} (${fields.status})` : fields.detail);
    this.name = 'AcmeProblem';
    this.type = fields.type;
    this.status = fields.status;
    this.detail = fields.detail;
    this.retryAfterMs = fields.retryAfterMs;
  }

  get isRateLimit(): boolean {
    return this.type === 'rateLimited' || this.status === 429;
  }

  /** Nothing is wrong with what was asked; the authority cannot answer now. Refused nonces say nothing about it either. */
  get isAway(): boolean {
    return this.status >= 500 || this.type === 'badNonce';
  }
}

/** Of an answer with an error status, or of the `error` field of an order or a challenge. Any value will do. */
export const readProblem = (value: unknown, status: number, retryAfterMs: number | null = null): AcmeProblem => {
  const parsed = PROBLEM.safeParse(value);
  if (!parsed.success) return new AcmeProblem({ type: '', status, detail: '', retryAfterMs });
  const { type, detail, subproblems } = parsed.data;
  const parts = subproblems.map((one) => `${one.identifier?.value ?? ''}: ${one.detail}`);
  const text = printable([detail, ...parts].filter((part) => part !== '').join('; '));
  return new AcmeProblem({
    type: type.startsWith(URN) ? type.slice(URN.length) : '',
    status,
    detail: text,
    retryAfterMs,
  });
};

/** It goes into logs and onto pages. */
const printable = (text: string): string => text.replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' ').slice(0, DETAIL_SHOWN_CHARS);

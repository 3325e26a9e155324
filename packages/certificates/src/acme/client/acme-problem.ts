// Error reported by a certificate authority (RFC 8555, 6.7).
import { z } from 'zod';

/** Maximum length of a certificate authority's text in our error messages. */
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
  /** Type without the URN: `badNonce`, `rateLimited`, `unauthorized`. Empty if the response has no type. */
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

  /** True if the request is fine but the authority cannot process it now. A rejected nonce also says nothing about the request. */
  get isAway(): boolean {
    return this.status >= 500 || this.type === 'badNonce';
  }
}

/** Parses an error response, or the `error` field of an order or challenge. Accepts any value. */
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

/** Makes a certificate authority's text safe for logs and pages: one line, limited length. */
const printable = (text: string): string => text.replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' ').slice(0, DETAIL_SHOWN_CHARS);

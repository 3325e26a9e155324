import { describe, expect, it } from 'vitest';
import { bearerChallenge, bearerHash, bearerProblem, makeBearer } from './request-gate.ts';

describe('the bearer token of a published server', () => {
  it('is new each time, and valid', () => {
    const made = Array.from({ length: 100 }, makeBearer);
    expect(new Set(made).size).toBe(100);
    for (const token of made) {
      expect(token).toMatch(/^mcp_[0-9A-Za-z]{32}$/);
      expect(bearerProblem(token)).toBeNull();
    }
  });

  it('is required, and a wrong token is refused', () => {
    const hash = bearerHash('a-token-of-ours-0123');
    const judge = (header: string | null): string | null => bearerChallenge(header, hash);
    expect(judge('Bearer a-token-of-ours-0123')).toBeNull();
    expect(judge('bearer  a-token-of-ours-0123 ')).toBeNull();
    for (const none of [null, '', 'Bearer', 'Bearer ', 'Basic YTpi', 'a-token-of-ours-0123']) {
      expect(judge(none)).toBe('Bearer');
    }
    for (const wrong of ['Bearer a-token-of-ours-012', 'Bearer A-token-of-ours-0123', `Bearer ${hash}`]) {
      expect(judge(wrong)).toBe('Bearer error="invalid_token"');
    }
    expect(bearerChallenge(null, null)).toBeNull();
  });

  it.each(['', 'short', 'with spaces in it and more', 'with\u0000zero-0123456789', 'x'.repeat(2000)])(
    'cannot be %j',
    (text) => {
      expect(bearerProblem(text)).toContain('16 to 1024');
    },
  );
});

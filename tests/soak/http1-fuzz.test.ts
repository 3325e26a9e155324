// The long fuzz run of the HTTP/1.1 rules: FUZZ_RUNS=100000 FUZZ_SEED=7 npx vitest run --project soak tests/soak/http1-fuzz.test.ts
import { describe } from 'vitest';
import { describeHttp1Fuzz } from '../../packages/http1/src/http1-fuzz.conformance.ts';

describe('a long fuzz run of the HTTP/1.1 parsers', () => {
  describeHttp1Fuzz(Number(process.env['FUZZ_RUNS'] ?? 20_000), Number(process.env['FUZZ_SEED'] ?? 1_000_000));
});

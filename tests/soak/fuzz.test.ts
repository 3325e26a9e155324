// The long fuzz run of the frame parser and the control messages: FUZZ_RUNS=100000 npx vitest run --project soak tests/soak/fuzz.test.ts
import { describe } from 'vitest';
import { describeWireFuzz } from '../../packages/protocol/src/wire-fuzz.conformance.ts';

describe('a long fuzz run of the wire format', () => {
  describeWireFuzz(Number(process.env['FUZZ_RUNS'] ?? 20_000));
});

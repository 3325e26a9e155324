import { describe } from 'vitest';
import { describeWireFuzz } from './wire-fuzz.conformance.ts';

describe('the wire format with any input', () => {
  describeWireFuzz(300);
});

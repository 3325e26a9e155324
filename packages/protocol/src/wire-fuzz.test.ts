import { describe } from 'vitest';
import { describeWireFuzz } from './wire-fuzz.conformance.ts';

describe('the wire against any input', () => {
  describeWireFuzz(300);
});

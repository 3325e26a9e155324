import { randomCases } from '@tunnel/testkit';
import { describe } from 'vitest';
import { describeHttp1Fuzz } from './http1-fuzz.conformance.ts';

describe('HTTP/1.1 against any input', () => {
  describeHttp1Fuzz(randomCases(600), 1);
});

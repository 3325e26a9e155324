// Tests of visitors that send requests and never read responses, which must cost the server little. The load tests cover every path that
// bytes take out of the server; the long tests cover the remaining kinds of visitors.
import { it } from '../system-test.fixture.ts';
import { BODY, expectLittleKept, NOBODY, STALLED_TIMEOUT_MS, type StalledKind } from './stalled-visitors.fixture.ts';

const KINDS: readonly StalledKind[] = [
  { over: 'plain HTTP/1.1', ...NOBODY, isStalled: true },
  { over: 'TLS', ...BODY },
  { over: 'HTTP/2', ...BODY },
];

it.for(KINDS)(
  'visitors that never read $what over $over use little memory of the server',
  {
    timeout: STALLED_TIMEOUT_MS,
  },
  (kind, { harness }) => expectLittleKept(harness, kind),
);

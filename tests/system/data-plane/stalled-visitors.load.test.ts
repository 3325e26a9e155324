// Visitors who ask and never read cost the server little: one kind for each of the ways that bytes take out of it. The long tests have the others.
import { it } from '../system-test.fixture.ts';
import { BODY, expectLittleKept, NOBODY, STALLED_TIMEOUT_MS, type StalledKind } from './stalled-visitors.fixture.ts';

const KINDS: readonly StalledKind[] = [
  { over: 'HTTP/1.1 in clear', ...NOBODY, isStalled: true },
  { over: 'TLS', ...BODY },
  { over: 'HTTP/2', ...BODY },
];

it.for(KINDS)(
  'visitors who never read $what over $over cost the server little',
  {
    timeout: STALLED_TIMEOUT_MS,
  },
  (kind, { harness }) => expectLittleKept(harness, kind),
);

// Visitors who ask and never read cost the server little: one kind for each of the ways that bytes take out of it. The long tests have the others.
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

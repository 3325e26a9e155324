// Tests of the kinds of stalled visitors that the load tests leave out.
import { it } from '../system-test.fixture.ts';
import {
  BODY,
  expectLittleKept,
  HINTS,
  NOBODY,
  PAGES,
  STALLED_TIMEOUT_MS,
  type StalledKind,
} from './stalled-visitors.fixture.ts';

const KINDS: readonly StalledKind[] = [
  { over: 'plain HTTP/1.1', ...BODY },
  { over: 'plain HTTP/1.1', ...PAGES, isStalled: false },
  { over: 'plain HTTP/1.1', ...HINTS },
  { over: 'TLS', ...NOBODY, isStalled: false },
  { over: 'TLS', ...HINTS },
  { over: 'HTTP/2', ...HINTS },
];

it.for(KINDS)(
  'visitors that never read $what over $over use little memory of the server',
  {
    timeout: STALLED_TIMEOUT_MS,
  },
  (kind, { harness }) => expectLittleKept(harness, kind),
);

// The kinds of visitors who never read that the load tests leave out.
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
  { over: 'HTTP/1.1 in clear', ...BODY },
  { over: 'HTTP/1.1 in clear', ...PAGES, isStalled: false },
  { over: 'HTTP/1.1 in clear', ...HINTS },
  { over: 'TLS', ...NOBODY, isStalled: false },
  { over: 'TLS', ...HINTS },
  { over: 'HTTP/2', ...HINTS },
];

it.for(KINDS)(
  'visitors who never read $what over $over cost the server little',
  {
    timeout: STALLED_TIMEOUT_MS,
  },
  (kind, { harness }) => expectLittleKept(harness, kind),
);

// Checks that every row has a test and that README.md lists the test files.
import { testRowMap } from '../row-map.fixture.ts';
import { ROWS } from './rows.fixture.ts';

testRowMap({
  at: import.meta.url,
  rows: ROWS,
  intro: [
    '# The platform API, the specification row by row',
    '',
    'Each test is named after its row: `npx vitest run tests/conformance/platform -t "API keys, row 2"`.',
    'Rows are listed in `rows.fixture.ts`, those of the section Contract are decisions where the specification is silent.',
    '`bad-input*.test.ts` sends every endpoint what nobody should send. `*.db.test.ts` are about time: the platform in the process, with a clock that moves on request.',
  ],
});

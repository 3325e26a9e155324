// Checks that every row has a test and that README.md lists the test files.
import { testRowMap } from '../row-map.fixture.ts';
import { ROWS } from './rows.fixture.ts';

testRowMap({
  at: import.meta.url,
  rows: ROWS,
  intro: [
    '# Load balancing, the specification row by row',
    '',
    'Each test is named after its row: `npx vitest run tests/conformance/load-balancing -t "Group lifecycle, row 3"`.',
    'Rows are listed in `rows.fixture.ts`, those of the section Contract are decisions where the specification is silent.',
    '`switched-off*.test.ts` tests the rows that behave differently while `[load_balancing] enabled` is false.',
  ],
});

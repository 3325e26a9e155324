// Checks that every row has a test and that README.md lists the test files.
import { testRowMap } from '../row-map.fixture.ts';
import { ROWS } from './rows.fixture.ts';

testRowMap({
  at: import.meta.url,
  rows: ROWS,
  intro: [
    '# Billing, the specification row by row',
    '',
    'Each test is named after its row: `npx vitest run tests/conformance/billing -t "Contract, row 8"`.',
    'Rows are listed in `rows.fixture.ts`, those of the section Contract are decisions where the specification is silent.',
    'All share one server and one end of the month (`billing.slow.test.ts`). `story.rows.ts` is the whole story once, with the command line: sign-up, payment method, subscription, traffic, cap, month, invoice.',
    'Usage of many gigabytes is told by an edge of the test (`tests/system/usage-reporting-edge.fixture.ts`) over the edge link, as every edge tells it; what reaches the cap of the story is carried.',
  ],
});

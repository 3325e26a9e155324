// Runs all tests of the folder on a single server: first the tests within the month, then the end of the month once for all tests, and
// then the tests that follow.
import { monthWithRoom } from '@tunnel/testkit';
import { afterAll, beforeAll, describe } from 'vitest';
import { BillingHarness } from './billing-harness.fixture.ts';
import { capRows } from './cap.rows.ts';
import { endpointRows } from './endpoints.rows.ts';
import { afterItsEnd, beforeItsEnd, Month } from './periods.rows.ts';
import { simulatorRows, simulatorRowsAtTheEnd } from './simulator.rows.ts';
import { statusRows } from './status.rows.ts';
import { Story } from './story.rows.ts';

const harness = new BillingHarness();
const month = new Month(harness);
const story = new Story(harness);
/** Time that all tests take on a busy machine. */
const ROOM_MS = 240_000;
beforeAll(async () => {
  await monthWithRoom(ROOM_MS);
  await harness.start();
  await month.prepare();
}, ROOM_MS + 120_000);
afterAll(() => harness.close());

// The tests of a part run at the same time, because most of them wait for events. The parts run one after the other.
describe('billing during the month', () => {
  describe.concurrent('all sections at once', () => {
    story.untilTheMonthEnds();
    capRows(harness);
    beforeItsEnd(harness, month);
    simulatorRows(harness);
    endpointRows(harness);
    statusRows(harness);
  });
});

describe('billing after the end of the month', () => {
  beforeAll(() => harness.endMonth());
  describe.concurrent('all sections at once', () => {
    story.afterTheMonth();
    afterItsEnd(harness, month);
  });
});

describe('changes to the whole simulator', () => {
  simulatorRowsAtTheEnd(harness, month);
});

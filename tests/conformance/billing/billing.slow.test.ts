// All tests of the folder on one server: first what needs no end of the month, then one end of it for all, and what comes after.
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
/** What all of it takes on a busy machine. */
const ROOM_MS = 240_000;
beforeAll(async () => {
  await monthWithRoom(ROOM_MS);
  await harness.start();
  await month.prepare();
}, ROOM_MS + 120_000);
afterAll(() => harness.close());

// The tests of each part run at once, because most of them wait for something; the parts do not.
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

import { describeProcessor } from './processor.conformance.ts';
import { openSimulatedProcessor } from './simulated-processor.fixture.ts';

describeProcessor('the simulator', async () => {
  const harness = await openSimulatedProcessor();
  return {
    processor: harness.processor,
    webhookSecret: harness.simulator.webhookSecret,
    confirm: async (clientSecret, card) => {
      const { status, body } = await harness.control(`/setup_intents/${clientSecret}/confirm`, { card });
      if (status !== 200) throw new Error(JSON.stringify(body));
    },
    setToEnd: async (id) => void (await harness.control(`/subscriptions/${id}/cancel`)),
    waitingItems: async (id) => {
      const response = await harness.call('GET', `/v1/invoiceitems?customer=${id}`);
      const { data } = (await response.json()) as { data: { invoice: string | null }[] };
      return data.filter(({ invoice }) => invoice === null).length;
    },
    sumsWithinMs: 1000,
    close: () => harness.close(),
  };
});

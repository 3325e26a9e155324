import { describeProcessor } from './processor.conformance.ts';
import { openSimulatedProcessor } from './simulated-processor.fixture.ts';

describeProcessor('the simulator', async () => {
  const simulated = await openSimulatedProcessor();
  return {
    processor: simulated.processor,
    webhookSecret: simulated.simulator.webhookSecret,
    confirm: async (clientSecret, card) => {
      const { status, body } = await simulated.control(`/setup_intents/${clientSecret}/confirm`, { card });
      if (status !== 200) throw new Error(JSON.stringify(body));
    },
    setToEnd: async (id) => void (await simulated.control(`/subscriptions/${id}/cancel`)),
    waitingItems: async (id) => {
      const response = await simulated.call('GET', `/v1/invoiceitems?customer=${id}`);
      const { data } = (await response.json()) as { data: { invoice: string | null }[] };
      return data.filter(({ invoice }) => invoice === null).length;
    },
    sumsWithinMs: 1000,
    close: () => simulated.close(),
  };
});

// The SDK takes any JSON without an error in it for what it asked for, whatever its status. What somebody on the way says would
// then be a report that was taken, or an empty secret: so only objects of the processor pass, and its errors.
import { Stripe } from 'stripe';

type HttpClient = ReturnType<typeof Stripe.createNodeHttpClient>;

export const strictHttpClient = (): HttpClient => {
  const client = Stripe.createNodeHttpClient();
  const makeRequest = client.makeRequest.bind(client);
  client.makeRequest = async (...request) => {
    const response = await makeRequest(...request);
    const read = response.toJSON.bind(response);
    response.toJSON = async () => checked(response.getStatusCode(), await read());
    return response;
  };
  return client;
};

/** Everything that the processor gives says what it is. */
const checked = (status: number, body: unknown): unknown => {
  const told = typeof body === 'object' && body !== null ? (body as { object?: unknown; error?: unknown }) : {};
  const isError = typeof told.error === 'object' && told.error !== null;
  if (isError || (status < 300 && typeof told.object === 'string')) return body;
  throw new Error(`an answer of another form, with status ${status}`);
};

// A person with an account, and a visitor: requests to a server on this machine.
import { request } from 'node:http';
import { until } from '../../lib/until.mjs';

const PASSWORD = 'correct horse battery';

/** Sends a request to a port of this machine. Resolves with { status, text }. */
export const ask = ({ port, host = 'localhost', path = '/', method = 'GET', headers = {}, body }) =>
  new Promise((resolve, reject) => {
    const options = {
      host: '127.0.0.1',
      port,
      path,
      method,
      headers: { host, ...headers },
      agent: false,
      timeout: 20_000,
    };
    const sent = request(options, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part) => {
        text += part;
      });
      response.on('error', reject).on('end', () => resolve({ status: response.statusCode, text }));
    });
    sent.on('timeout', () => sent.destroy(new Error(`no response from port ${port}`)));
    sent.on('error', reject).end(body);
  });

/** The platform of a server, and the account of a person there. `at`: the port and the host name of the platform. */
export class Person {
  email = 'someone@example.com';
  password = PASSWORD;
  #at;
  #token;

  constructor(at) {
    this.#at = at;
  }

  async call(method, path, body) {
    const headers = {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }),
    };
    const answer = await ask({
      ...this.#at,
      method,
      path,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
    return answer.text === '' ? null : JSON.parse(answer.text);
  }

  /** Creates the first account of a server. `read` returns the text of files in its data directory. */
  async signUp(read) {
    // The file appears shortly after the server is healthy.
    const offered = await until(
      'the link of the first account is there',
      () => read('first-account-link').trim() || null,
    );
    const invite = new URL(offered).searchParams.get('invite');
    await this.call('POST', '/auth/register', { email: this.email, password: this.password, invite });
    const link = /\/auth\/verify-email\/\S+/;
    const path = await until('the mail is there', () => link.exec(read('mail/*.eml').replaceAll(/=\r?\n/g, ''))?.[0]);
    await this.call('GET', path);
    await this.signIn();
  }

  async signIn() {
    this.#token = undefined;
    const { access_token } = await this.call('POST', '/auth/login', { email: this.email, password: this.password });
    this.#token = access_token;
  }

  usage = () => this.call('GET', '/usage');

  /** Waits until the platform has counted at least this many requests. */
  usageOf = (requests) =>
    until(`${requests} requests are counted`, async () => {
      const usage = await this.usage();
      return usage.total_requests_30d >= requests ? usage : null;
    });

  /** Labels of the names that belong to the account permanently. */
  async reserved() {
    const list = await this.call('GET', '/reservations');
    const rows = Array.isArray(list) ? list : list.reservations;
    return rows.filter(({ state }) => state === 'reserved').map(({ label }) => label);
  }
}

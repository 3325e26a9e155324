// A group of real clients with a policy that rises by revision, and visitors that check the policy revision of every response.
import { renameSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import type { Harness } from '../harness.fixture.ts';
import { type Answer, askHttp, endpointOf, type PublicEndpoint, startWeb } from '../http-tunnels.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import type { TunnelProgram } from '../tunnel-program.fixture.ts';

/** Options of a stack with groups enabled. */
export const GROUPS_ON = { tables: '[load_balancing]\nenabled = true' };

const GROUP = 'shop';
/** Header with the policy revision, set on every response, even on responses of the policy's own rules. */
const REVISION_HEADER = 'x-revision';

export class RollingMember {
  readonly program: TunnelProgram;
  readonly #write: (revision: number) => void;

  private constructor(program: TunnelProgram, write: (revision: number) => void) {
    this.program = program;
    this.#write = write;
  }

  /** Starts a member. `closed` is called for every request that reached the service despite a rule that denies it. */
  static async start(
    harness: Harness,
    stack: Stack,
    { revision, closed, server = stack.control }: { revision: number; closed: (url: string) => void; server?: string },
  ): Promise<RollingMember> {
    const service = harness.use(
      await startWeb((request, response) => {
        if (request.url?.startsWith('/closed') === true) closed(request.url);
        request.resume().on('end', () => response.end('served'));
      }),
    );
    const home = await harness.folder();
    const file = join(home, 'tunnel.yml');
    const write = (next: number): void => {
      // Replaces the file in a single step, because a half-written file would be refused.
      writeFileSync(`${file}.new`, configOf(stack, server, service.port, next));
      renameSync(`${file}.new`, file);
    };
    write(revision);
    const args = ['start', '--config', file, '--json', '--quiet', '--no-inspect'];
    return new RollingMember(await harness.run(args, { home }), write);
  }

  /** Writes the revision to the file of the member. The running client does not read the file yet. */
  write(revision: number): void {
    this.#write(revision);
  }

  /** Writes the revision, and waits until the client has reloaded the file and the edge has accepted the policy. */
  async roll(revision: number): Promise<void> {
    const before = this.program.events('reloaded').length;
    this.#write(revision);
    this.program.signal('SIGHUP');
    expect(await this.program.waitFor('reloaded', { nth: before + 1 })).toMatchObject({ changed: [GROUP] });
  }

  async endpoint(): Promise<PublicEndpoint> {
    return endpointOf((await this.program.ready()).public_url);
  }
}

const configOf = (stack: Stack, server: string, port: number, revision: number): string =>
  `server: ${server}
auth_token_file: ${stack.tokenFile}
tunnels:
  ${GROUP}:
    proto: http
    local_port: ${port}
    group: ${GROUP}
    group_key: a key that all members share
    policy_revision: ${revision}
    policy:
      - name: says ${revision}
        response_headers: { set: { ${REVISION_HEADER}: "${revision}" } }
      - name: closed
        match: { path: ["/closed/**"] }
        deny: true
`;

export const revisionOf = ({ headers }: Answer): number => Number(headers[REVISION_HEADER] ?? Number.NaN);

/** Visitors that send requests without a pause and check every response. */
export class RollVisitors {
  /** Lowest revision that a response may have from now on. */
  floor: number;
  /** Descriptions of unexpected responses. */
  readonly problems: string[] = [];
  readonly seen = new Set<number>();
  served = 0;
  denied = 0;
  readonly #endpoint: PublicEndpoint;
  readonly #mayFail: boolean;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 8 });
  readonly #loops: Promise<void>[];
  #isOver = false;

  /**
   * Starts the visitors. With `mayFail`, members or edges are killed during the test, so a request may get no response, or an error page
   * of the edge.
   */
  constructor(endpoint: PublicEndpoint, options: { readonly floor: number; readonly mayFail?: boolean }) {
    this.#endpoint = endpoint;
    this.floor = options.floor;
    this.#mayFail = options.mayFail ?? false;
    this.#loops = Array.from({ length: 4 }, (_, at) => this.#loop(at));
  }

  async #loop(at: number): Promise<void> {
    for (let n = at; !this.#isOver; n += 1) {
      const isClosed = n % 4 === 0;
      const { floor } = this;
      try {
        this.#judge(await this.#ask(isClosed ? '/closed/door' : '/'), isClosed, floor);
      } catch (error) {
        if (!this.#mayFail) this.problems.push(`no answer: ${(error as Error).message}`);
      }
    }
  }

  #ask(path: string): Promise<Answer> {
    return askHttp(this.#endpoint, { path, agent: this.#agent });
  }

  #judge(answer: Answer, isClosed: boolean, floor: number): void {
    const { status, text } = answer;
    // Status of a request while the tunnel or every member is away.
    if (this.#mayFail && [404, 502, 503].includes(status)) return;
    const revision = revisionOf(answer);
    if (!(revision >= floor)) this.problems.push(`revision ${revision} after ${floor} was answered`);
    this.seen.add(revision);
    const isRight = isClosed ? status === 403 : status === 200 && text === 'served';
    if (!isRight) this.problems.push(`${isClosed ? 'closed' : 'open'}: ${status} ${text.slice(0, 80)}`);
    if (isClosed) this.denied += 1;
    else this.served += 1;
  }

  /** Waits until `count` further requests were served and `count` were rejected. */
  async more(count: number): Promise<void> {
    const served = this.served + count;
    const denied = this.denied + count;
    await eventually(
      () => {
        expect(this.served).toBeGreaterThanOrEqual(served);
        expect(this.denied).toBeGreaterThanOrEqual(denied);
      },
      { timeoutMs: 60_000 },
    );
  }

  async close(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#loops);
    this.#agent.destroy();
  }
}

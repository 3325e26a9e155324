// Reads a Server-Sent Events stream and keeps its events in order.

export class EventStream {
  /** Events as { event, id, data }, with data parsed as JSON. */
  events = [];
  pings = 0;
  ended = false;
  #stop = new AbortController();

  static async open(edge, path) {
    const stream = new EventStream();
    const headers = { ...edge.headers, accept: 'text/event-stream' };
    const answer = await fetch(`${edge.run.api_url}${path}`, { headers, signal: stream.#stop.signal });
    if (!answer.ok) throw new Error(`GET ${path}: ${answer.status} ${await answer.text()}`);
    void stream.#read(answer.body).catch(() => {});
    return stream;
  }

  eventsOf(kind) {
    return this.events.filter(({ event }) => event === kind);
  }

  close() {
    this.#stop.abort();
  }

  async #read(body) {
    let rest = '';
    try {
      for await (const piece of body.pipeThrough(new TextDecoderStream())) {
        const blocks = (rest + piece).split('\n\n');
        rest = blocks.pop();
        for (const block of blocks) this.#take(block);
      }
    } finally {
      this.ended = true;
    }
  }

  #take(block) {
    const fields = new Map();
    for (const line of block.split('\n')) {
      const colon = line.indexOf(':');
      if (colon === 0) this.pings += 1;
      else if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1).trimStart());
    }
    const data = fields.get('data');
    if (data === undefined) return;
    this.events.push({ event: fields.get('event') ?? 'message', id: fields.get('id'), data: JSON.parse(data) });
  }
}

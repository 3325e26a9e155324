// Serves the git repositories below a folder over smart HTTP, with git's CGI program.
// Usage: git-service.mjs PORT FOLDER
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';

const [port, folder = ''] = process.argv.slice(2);

const environmentOf = (request) => {
  const url = new URL(request.url ?? '/', 'http://local');
  return {
    ...process.env,
    GIT_PROJECT_ROOT: folder,
    GIT_HTTP_EXPORT_ALL: '1',
    REMOTE_USER: 'tester',
    REMOTE_ADDR: '127.0.0.1',
    REQUEST_METHOD: request.method,
    PATH_INFO: url.pathname,
    QUERY_STRING: url.search.slice(1),
    CONTENT_TYPE: request.headers['content-type'] ?? '',
    CONTENT_LENGTH: request.headers['content-length'] ?? '',
    HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
    GIT_PROTOCOL: request.headers['git-protocol'] ?? '',
  };
};

/** Forwards a CGI response: header fields, an empty line, the body. */
const passOn = (cgi, response) => {
  let head = '';
  const onData = (piece) => {
    head += piece.toString('latin1');
    const end = head.indexOf('\r\n\r\n');
    if (end === -1) return;
    cgi.stdout.off('data', onData);
    for (const line of head.slice(0, end).split('\r\n')) {
      const [name = '', value = ''] = line.split(/:\s*/, 2);
      if (name.toLowerCase() === 'status') response.statusCode = Number.parseInt(value, 10);
      else response.setHeader(name, value);
    }
    response.write(Buffer.from(head.slice(end + 4), 'latin1'));
    cgi.stdout.pipe(response);
  };
  cgi.stdout.on('data', onData);
};

createServer((request, response) => {
  const cgi = spawn('git', ['http-backend'], { env: environmentOf(request), stdio: ['pipe', 'pipe', 'inherit'] });
  cgi.stdin.on('error', () => {});
  request.pipe(cgi.stdin);
  passOn(cgi, response);
}).listen(Number(port), '127.0.0.1');

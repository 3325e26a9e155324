// A gRPC service without TLS, as `local_protocol: h2c` reaches it. Usage: grpc-service.mjs PORT
import { Metadata, Server, ServerCredentials, status } from '@grpc/grpc-js';
import { ECHO } from './grpc-echo.mjs';

const server = new Server();
server.addService(ECHO, {
  unary: ({ request, metadata }, callback) => {
    if (request.text === 'fail') {
      callback({ code: status.FAILED_PRECONDITION, details: 'as you asked' });
      return;
    }
    const trailer = new Metadata();
    trailer.set('x-seen', String(metadata.get('x-sent')[0] ?? ''));
    callback(null, { text: request.text }, trailer);
  },
  download: (call) => {
    for (let index = 0; index < call.request.count; index += 1) call.write({ index });
    call.end();
  },
  upload: (call, callback) => {
    let bytes = 0;
    call.on('data', ({ text }) => {
      bytes += text.length;
    });
    call.on('end', () => callback(null, { bytes }));
  },
  talk: (call) => {
    call.on('data', ({ text }) => call.write({ text: `echo ${text}` }));
    call.on('end', () => call.end());
  },
});
server.bindAsync(`127.0.0.1:${process.argv[2]}`, ServerCredentials.createInsecure(), (error) => {
  if (error) throw error;
});

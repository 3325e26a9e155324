// The calls that the gRPC service and its client agree on; messages are JSON, so that no compiler is needed.
const serialize = (value) => Buffer.from(JSON.stringify(value));
const deserialize = (bytes) => JSON.parse(bytes.toString());

const call = (name, requestStream, responseStream) => ({
  path: `/echo.Echo/${name}`,
  requestStream,
  responseStream,
  requestSerialize: serialize,
  requestDeserialize: deserialize,
  responseSerialize: serialize,
  responseDeserialize: deserialize,
});

export const ECHO = {
  unary: call('unary', false, false),
  download: call('download', false, true),
  upload: call('upload', true, false),
  talk: call('talk', true, true),
};

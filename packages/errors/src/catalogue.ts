// The one catalogue of everything that can go wrong in front of a person.
// `text` is public: {name} is filled from the fault's values. `next` says what to do about it.
// `status` is the HTTP status where the error meets HTTP; `retryable` says whether trying the same thing later can help.

export interface CatalogueEntry {
  readonly status: number;
  readonly retryable: boolean;
  readonly text: string;
  readonly next: string;
}

const entry = (status: number, retryable: boolean, text: string, next: string): CatalogueEntry => ({
  status,
  retryable,
  text,
  next,
});

export const CATALOGUE = {
  // --- configuration and start ---
  CONFIG_FILE_UNREADABLE: entry(500, false, 'cannot read {file}: {reason}', 'Check the path and the permissions of the file.'),
  CONFIG_SYNTAX: entry(500, false, '{file}:{line}: {reason}', 'Correct the file at that line.'),
  CONFIG_UNKNOWN_KEY: entry(500, false, '{where}: unknown key `{key}`{suggestion}', 'Remove the key, or use the suggested name.'),
  CONFIG_WRONG_VALUE: entry(500, false, '{where}: `{key}` must be {expected}, got {got}', 'Give the key a value of the expected kind.'),
  CONFIG_PORT_TAKEN: entry(500, false, 'port {port} on {host} is already in use ({key})', 'Stop the program that holds the port, or set another value for the key.'),
  CONFIG_PORT_DENIED: entry(500, false, 'port {port} on {host} cannot be opened: {reason} ({key})', 'Choose a port above 1023, give the process the right to open it, or correct the host.'),
  CONFIG_DATA_DIR: entry(500, false, 'data directory {dir} cannot be used: {reason}', 'Make the directory writable, or set `data_dir`.'),
  CONFIG_DATA_DIR_IN_USE: entry(500, false, 'data directory {dir} is in use by a running server (pid {pid})', 'Stop that server, or give this one a directory of its own: --data-dir.'),
  CONFIG_DATABASE_EMBEDDED: entry(500, false, 'the embedded database cannot run in {dir}: {reason}', 'Choose another place with --data-dir, or set `[database] url` to a PostgreSQL of yours.'),
  CONFIG_DATABASE_NEWER: entry(500, false, 'the database was used by a newer version of this server: {migration} is unknown to this one', 'Run that version again, or a later one. To stay with this one, put back a copy of the database from before the upgrade.'),
  CONFIG_SECRET_KEY: entry(500, false, 'the key file {file} cannot be used: {reason}', 'Put the right file there, or name it in `[platform] secret_key_file`; all platforms of one database need the same. If it is lost for good: `tunnel-server signing-keys rotate --discard-old`.'),
  CONFIG_TLS_FILES: entry(500, false, 'TLS certificate cannot be loaded from {file}: {reason}', 'Check `[tls] cert_path` and `key_path`.'),
  CONFIG_NO_ALERT_URL: entry(500, false, 'the config has no `load_balancing.alert_webhook_url`', 'Set it to the address that takes your alerts.'),
  CONFIG_API_URL_HOST: entry(500, false, 'the certificate {file} is not for {host}, where the platform would reach REST (it is for {names})', 'Name one of its hosts in `[server] api_url`, or use a certificate for that host.'),

  // --- authentication on the control plane and the edge REST ---
  AUTH_TOKEN_INVALID: entry(401, false, 'invalid API key', 'Check it: --token-file, TUNNEL_API_KEY or `auth_token`; create a new one if it was revoked.'),
  AUTH_TOKEN_MISSING: entry(401, false, 'no API key was given', 'Send `Authorization: Bearer <API key>`.'),
  AUTH_TOKEN_REVOKED: entry(401, false, 'this API key was revoked', 'Create a new one.'),
  AUTH_TOO_MANY_FAILURES: entry(429, true, 'too many refused keys from this address; try again in {seconds} s', 'Wait, then try with a valid key.'),
  AUTH_BACKEND_AWAY: entry(503, true, 'keys cannot be checked right now', 'Try again; the client does so by itself.'),
  ACCOUNT_SUSPENDED: entry(403, false, 'the account is suspended', 'Write to the operator of this edge.'),
  ACCOUNT_DELETED: entry(403, false, 'the account was deleted', 'Its keys and tunnels have ended for good. To go on, sign up again.'),

  // --- the control connection ---
  CONTROL_VERSION_UNSUPPORTED: entry(400, false, 'protocol versions {offered} are not spoken here (this edge speaks {supported})', 'Update the client or the edge.'),
  CONTROL_BAD_FRAME: entry(400, false, 'control frame refused: {reason}', 'Correct the frame; docs/protocol.md describes every one.'),
  CONTROL_UNKNOWN_FRAME: entry(400, false, 'unknown control frame type `{type}`', 'Ignore it, or update the older side.'),
  CONTROL_FRAME_TOO_LARGE: entry(413, false, 'control frame of {bytes} bytes is over the limit of {limit}', 'Send smaller frames.'),
  CONTROL_NOT_AUTHENTICATED: entry(401, false, 'the first frame must be Auth', 'Send Auth first.'),
  CONTROL_AUTH_TIMEOUT: entry(408, true, 'no Auth frame within {seconds} s', 'Send Auth right after connecting.'),
  CONTROL_REPLACED: entry(409, false, 'another connection resumed this session', 'Nothing to do when it was your own client that came back.'),
  CONTROL_DEAD: entry(408, true, 'nothing was heard for {seconds} s', 'The client reconnects by itself.'),
  CONTROL_SLOW: entry(429, true, 'control frames are not read fast enough', 'The client reconnects by itself.'),
  EDGE_SHUTTING_DOWN: entry(503, true, 'the edge is shutting down', 'The client reconnects by itself.'),
  SESSION_LIMIT: entry(503, true, 'no room for another session: {reason}', 'Stop clients of this account that are not needed, try again later, or use another edge.'),
  CONTROL_SPEED_LIMIT: entry(429, true, 'this account has measured its path with {limit} bytes within a minute; try again in {seconds} s', 'Wait, or ask for fewer bytes.'),
  CONTROL_WAITING_LIMIT: entry(429, true, 'this address holds its limit of {limit} connections that have not authenticated', 'Authenticate right after connecting; the client does so by itself.'),

  // --- carriers and streams ---
  CARRIER_TOKEN_INVALID: entry(401, true, 'the carrier token is unknown or was used before', 'The client asks for a new token by itself.'),
  CARRIER_LIMIT: entry(429, true, 'the session holds its limit of {limit} carriers', 'Close a carrier first.'),
  CARRIER_LOST: entry(502, true, 'the connection between edge and client was lost', 'The client reconnects by itself; try again.'),
  CARRIER_PROTOCOL: entry(400, false, 'carrier protocol violation: {reason}', 'Report it: one side does not follow docs/protocol.md.'),

  // --- tunnels ---
  TUNNEL_PROTOCOL_UNSUPPORTED: entry(400, false, 'tunnels of protocol `{protocol}` are not in this version', 'Use a protocol of this version, or update the edge.'),
  TUNNEL_PROTOCOL_OFF: entry(403, false, '{protocol} tunnels are switched off on this edge', 'Use another edge, or ask its operator for `enabled` in `[udp]` or `[p2p]` of server.toml.'),
  TUNNEL_LIMIT: entry(403, false, 'this session holds its limit of {limit} tunnels', 'Close a tunnel, or start another client.'),
  TUNNEL_PORTS_EXHAUSTED: entry(503, true, 'no free port left in {range} {from}-{to}', 'Close a tunnel, or widen that range in `[limits]` on the edge.'),
  TUNNEL_PORT_LIMIT: entry(503, true, 'no room for another port: {reason}', 'Close a tunnel, or give the edge more descriptors: docs/operations.md.'),
  TUNNEL_PORT_IN_USE: entry(409, true, 'port {port} is already in use', 'Ask for another port, or leave the choice to the edge.'),
  TUNNEL_PORT_OUT_OF_RANGE: entry(400, false, 'port {port} is not allowed: use {from}-{to}', 'Ask for one of those, or for none: then you get a free one.'),
  TUNNEL_SUBDOMAIN_INVALID: entry(400, false, "subdomain '{subdomain}' is not valid: {reason}", 'Use 1 to 63 letters a-z, digits and inner hyphens, and none of the reserved words.'),
  TUNNEL_SUBDOMAIN_IN_USE: entry(409, true, "subdomain '{subdomain}' is already in use", 'Ask for another subdomain, or leave the choice to the edge.'),
  TUNNEL_NAME_INVALID: entry(400, false, 'tunnel name `{name}` is not valid: {reason}', 'Use 1 to 100 printable characters.'),
  TUNNEL_HOST_HEADER_INVALID: entry(400, false, 'host header `{host_header}` is not a host name with an optional port', 'Use `keep`, `rewrite`, or a name such as `shop.test` or `127.0.0.1:8080`.'),
  TUNNEL_P2P_NAME_INVALID: entry(400, false, "p2p name '{name}' is not valid: {reason}", 'Use 1 to 63 letters a-z, digits and inner hyphens, and none of the reserved words.'),
  TUNNEL_P2P_NAME_IN_USE: entry(409, true, "p2p name '{name}' is already in use", 'Publish under another name, or stop the client that has this one.'),
  TUNNEL_P2P_FIELDS_INVALID: entry(400, false, '{reason}', 'Correct the p2p fields of the registration; docs/protocol.md describes them.'),
  TUNNEL_UNKNOWN: entry(404, false, 'no such tunnel', 'List the tunnels: GET /api/tunnels.'),
  TUNNEL_NOT_HTTP: entry(400, false, 'the tunnel is a {protocol} tunnel: only http tunnels have captured requests', 'Ask for an http tunnel.'),
  TUNNEL_NOT_UDP: entry(400, false, 'the tunnel is a {protocol} tunnel: only udp tunnels have flows', 'Ask for a udp tunnel.'),
  TUNNEL_NOT_P2P: entry(400, false, 'the tunnel is a {protocol} tunnel: only p2p tunnels have peers', 'Ask for a p2p tunnel.'),
  TUNNEL_CLOSED_BY_OPERATOR: entry(410, false, 'the tunnel was closed through the edge', 'Start it again if that was a mistake.'),
  TUNNEL_CLOSED: entry(410, false, 'the tunnel is closed', 'Open a new one.'),
  CONNECTIONS_PER_TUNNEL: entry(503, true, 'the tunnel holds its limit of {limit} connections', 'Try again later.'),
  CONNECTIONS_PER_ADDRESS: entry(429, true, 'this address holds its limit of {limit} connections', 'Close connections first.'),
  CONNECTIONS_FULL: entry(503, true, 'there is no room for another connection: all {limit} are taken', 'Try again in a moment. If the server is yours: docs/operations.md tells how to give it more descriptors.'),

  // --- groups ---
  GROUP_NAME_INVALID: entry(400, false, 'group name `{name}` is not valid: {reason}', 'Use 1 to 100 printable characters without @.'),
  GROUP_FIELDS_INVALID: entry(400, false, '{reason}', 'Correct `group`, `group_key` or `health_check` of the tunnel.'),
  GROUP_KEY_MISMATCH: entry(409, true, 'group key does not match', 'Give every member of the group the same `group_key`; if the name is not yours, take another one.'),
  GROUP_PROTOCOL_MISMATCH: entry(409, false, 'group protocol does not match', 'Give every member of the group the same `proto`: http and https do not mix.'),
  GROUP_UNHEALTHY: entry(502, true, 'no healthy member serves this address right now', 'Try again in a moment. Is it yours? Start the services behind the group; `tunnel pools` shows them.'),
  GROUP_UNKNOWN: entry(404, false, 'no such group', 'List the groups: GET /api/groups.'),

  // --- peers of p2p tunnels: an unknown name, a wrong secret and a key that may not have one answer, so that nobody learns which it was ---
  P2P_NOT_FOUND: entry(404, true, "p2p '{name}' was not found, or the secret does not match", 'Check the name and the secret, and that the publisher runs with a key of the same account (or `p2p_allow: anyone`).'),
  P2P_TOO_MANY_ATTEMPTS: entry(429, true, 'too many attempts; try again in {seconds} s', 'Correct the name or the secret, then wait.'),
  P2P_AWAY: entry(503, true, "the publisher of '{name}' is not connected right now", 'Start the publisher, or wait: the client tries again by itself.'),
  P2P_SERVICE_MISMATCH: entry(409, false, "'{name}' is a {service} service", 'Give both ends the same kind of service: --udp, or `p2p_service`.'),
  P2P_PEER_LIMIT: entry(429, true, "'{name}' holds its limit of {limit} peers", 'Stop a subscriber that is not needed. Operators: `[p2p] peers_per_tunnel`.'),
  P2P_PROOF_FAILED: entry(403, true, 'the peer could not prove the secret', 'Give both ends the same secret. If they have it: something between them answers in place of the peer.'),
  P2P_DISMISSED: entry(410, true, "this peer was dismissed from '{name}'", 'Ask whoever publishes it. The client tries again by itself.'),
  P2P_PEER_UNKNOWN: entry(404, false, 'no such peer', 'List the peers: GET /api/tunnels/:id/peers.'),

  // --- HTTP visitors: each page says what happened and who can fix it ---
  TUNNEL_NOT_FOUND: entry(404, false, 'there is no tunnel at {host}', 'Check the address. Is it yours? Start it with `tunnel http`.'),
  TUNNEL_AWAY: entry(502, true, 'the tunnel is not connected right now', 'Try again in a moment. Is it yours? Check the computer that runs `tunnel`.'),
  LOCAL_UNREACHABLE: entry(502, true, 'the service behind this tunnel cannot be reached: {reason}', 'Is it yours? Start the service, or correct the local port of the tunnel.'),
  LOCAL_CLOSED: entry(502, true, 'the service behind this tunnel gave no complete answer: {reason}', 'Try again. Is it yours? Look at the log of the service.'),
  LOCAL_MALFORMED: entry(502, false, 'the service behind this tunnel gave an answer that is not HTTP: {reason}', 'Is it yours? Check that the service speaks HTTP on this port. If it speaks HTTPS: `tunnel http --https`, or `proto: https`.'),
  LOCAL_TIMEOUT: entry(504, true, 'the service behind this tunnel did not answer within {seconds} s', 'Try again. Is it yours? Look at the log of the service.'),
  HTTP_BAD_REQUEST: entry(400, false, 'the request is malformed: {reason}', 'Correct the client that sent it.'),
  HTTP_HEAD_TIMEOUT: entry(408, true, 'the request did not arrive in time', 'Try again.'),
  HTTP_HEAD_TOO_LARGE: entry(431, false, 'the request head is too large: {reason}', 'Send fewer or smaller headers, cookies above all.'),
  HTTP_ROUTE_TIMEOUT: entry(503, true, 'it took longer than {seconds} s to find out where this request goes', 'Try again in a moment.'),
  HTTP_NOT_IMPLEMENTED: entry(501, false, 'this kind of request is not served here: {reason}', 'Use another method or coding.'),
  HTTP_VERSION_UNSUPPORTED: entry(505, false, 'this version of HTTP is not spoken here: {reason}', 'Use HTTP/1.1.'),

  // --- REST ---
  API_NOT_FOUND: entry(404, false, 'Not found: {path}', 'Check the path. Every call is in the OpenAPI document: /openapi.json, at an edge /api/openapi.json.'),
  API_METHOD_NOT_ALLOWED: entry(405, false, '{method} is not allowed here', 'Use one of the methods in the Allow header.'),
  API_BAD_REQUEST: entry(400, false, '{reason}', 'Correct the request.'),
  API_BODY_TOO_LARGE: entry(413, false, 'the request body is over {limit} bytes', 'Send less.'),
  API_MEDIA_TYPE: entry(415, false, 'the body must be JSON', 'Send `content-type: application/json`.'),
  API_CALLER_GONE: entry(499, true, 'the caller hung up before its request was complete', 'Send the request again, whole.'),
  API_WRONG_HOST: entry(421, false, 'this platform does not answer to the host `{host}`', 'Use its own address. Operators: `[platform] public_url` is the one that people use, and a proxy in front has to pass on the Host it was asked for.'),
  API_OPERATOR_ONLY: entry(403, false, 'only the operator of this edge may see this', 'Use the admin token.'),
  API_STREAMS_BUSY: entry(429, true, '{limit} event streams are open; try again in {seconds} s', 'Close one, or wait.'),
  CAPTURE_UNKNOWN: entry(404, false, 'no such request among those kept for this tunnel', 'List them: GET /api/tunnels/:id/requests.'),
  CAPTURE_NOT_REPLAYABLE: entry(409, false, 'the request cannot be sent again: {reason}', 'Send a request of your own instead.'),
  CAPTURE_REPLAYS_BUSY: entry(429, true, '{limit} replays are under way; try again in {seconds} s', 'Wait for them to end.'),
  CAPTURE_WAITS_BUSY: entry(429, true, '{limit} calls wait for requests already; try again in {seconds} s', 'Wait for them to end, or end some.'),
  INTERNAL: entry(500, true, 'something went wrong on our side', 'Try again; if it stays, report the request id.'),

  // --- the platform ---
  DATABASE_AWAY: entry(503, true, 'the database cannot be reached right now', 'Try again after the seconds in the Retry-After header.'),
  TUNNEL_PLAN_LIMIT: entry(403, false, 'tunnel limit of {limit} reached', 'Close a tunnel, or change to a plan with more.'),
  TUNNEL_OVER_PLAN: entry(403, false, 'the subscription has ended: the plan `{plan}` allows {limit} tunnels, and this one is over that', 'Subscribe again, or close another tunnel and start this one anew.'),
  TUNNEL_CUSTOM_SUBDOMAIN: entry(403, false, 'subdomains of your choice are not in the plan `{plan}`', 'Leave the choice to the edge, or change to a plan that has them.'),
  EDGE_CREDENTIAL_INVALID: entry(401, false, 'the credential of this edge was not accepted', 'Make one with `tunnel-server edge-credential create`, and name its file in `[server] platform_credential_file`.'),
  EDGE_RECORDS_GAP: entry(409, false, 'the batch begins with record {first}, but {next} is the next one', 'Send the records from there on.'),
  EDGE_AWAY: entry(502, true, 'region {region} does not answer', 'Try again in a moment.'),
  EDGE_UNKNOWN: entry(404, false, 'there is no edge `{name}`', 'List them: tunnel-server edge-credential list.'),
  EDGE_NAME_INVALID: entry(400, false, 'the name of an edge must be 1 to 100 letters, digits, dots, hyphens and underscores', 'Choose such a name.'),
  EDGE_NAME_TAKEN: entry(409, false, 'there is an edge `{name}` already', 'Choose another name, or revoke that one first.'),
  USER_UNKNOWN: entry(404, false, 'no account has the email {email}', 'List them: tunnel-server admin users.'),
  PLAN_UNKNOWN: entry(400, false, 'there is no plan `{plan}` (there are: {plans})', 'Use one of these, or add it to `[platform.plans]`.'),
  KEY_LIMIT: entry(400, false, 'the account holds its limit of {limit} API keys', 'Revoke one that you no longer use.'),
  KEY_UNKNOWN: entry(404, false, 'no such key', 'List the keys: GET /keys.'),

  ACCOUNT_EXISTS: entry(409, false, 'this email is already registered', 'Log in, or ask for a new password: POST /auth/forgot-password.'),
  SIGN_UP_BY_INVITATION: entry(403, false, 'sign-up is by invitation here', 'Open the link of your invitation: it works once, for 7 days, and for the invited address. Or ask the operator for another one.'),
  SIGN_UP_CLOSED: entry(403, false, 'sign-up is closed here', 'Ask the operator for an account.'),
  PASSWORD_WRONG: entry(401, false, 'incorrect password', 'Check it, or ask for a new one: POST /auth/forgot-password.'),
  ACCOUNT_EXTERNAL: entry(403, false, 'this account signs in with {method}, not with a password', 'Use that sign-in.'),
  ACCOUNT_UNVERIFIED: entry(403, false, 'verify your email first', 'Open the link in the mail, or ask for another one: POST /auth/resend-verification.'),
  LOGIN_WRONG: entry(401, false, 'incorrect email or password', 'Check both, or ask for a new password: POST /auth/forgot-password.'),
  LOGIN_THROTTLED: entry(429, true, 'too many attempts; try again in {seconds} s', 'Wait for the seconds in the Retry-After header.'),
  LOGIN_BUSY: entry(503, true, 'too many passwords are being checked right now', 'Try again after the seconds in the Retry-After header.'),
  ACCESS_TOKEN_MISSING: entry(401, false, 'no access token was given', 'Send `Authorization: Bearer <access_token>`; POST /auth/login gives one.'),
  ACCESS_TOKEN_IS_API_KEY: entry(401, false, 'this is an API key: the platform API needs the access token of POST /auth/login', 'Log in with POST /auth/login. An API key opens tunnels, and reads them at the REST of the edge.'),
  ACCESS_TOKEN_INVALID: entry(401, false, 'invalid or expired access token', 'Get a new one: POST /auth/refresh, or log in again.'),
  REFRESH_INVALID: entry(401, false, 'the session has ended', 'Log in again.'),
  ORIGIN_REFUSED: entry(403, false, 'requests from other sites are not taken here', 'Send the request from the pages of this platform, or without an Origin header.'),
  MAIL_TOKEN_INVALID: entry(400, false, 'this link has expired or was already used', 'Ask for a new mail.'),
  LOGIN_SESSION_UNKNOWN: entry(404, false, 'no such session', 'List the sessions: GET /auth/sessions.'),
  OAUTH_CLIENT_REFUSED: entry(400, false, 'this app cannot be connected: {reason}', 'Tell the makers of the app. Without OAuth it can use an API key.'),
  OAUTH_CLIENTS_BUSY: entry(503, true, 'too many apps are being looked up right now', 'Try again after the seconds in the Retry-After header.'),
  OAUTH_REQUEST_UNKNOWN: entry(404, false, 'this request has expired or was already answered', 'Start again in the app that sent you here.'),
  OAUTH_CLIENT_UNKNOWN: entry(404, false, 'there is no OAuth client `{client}`', 'List them: tunnel-server oauth-client list.'),
  OAUTH_CLIENT_INVALID: entry(400, false, 'this client cannot be registered: {reason}', 'Correct --name or --redirect-uri.'),
  OAUTH_GRANT_UNKNOWN: entry(404, false, 'no such connected app', 'List those of the account: GET /oauth/grants.'),

  // --- billing ---
  SPEND_CAP_REACHED: entry(403, false, 'spend cap of {cap} reached', 'Raise or remove the cap: `tunnel billing cap`, or PATCH /billing/spend-cap. The next month begins at zero.'),
  ACCOUNT_PAST_DUE: entry(403, false, 'the account is past due: a payment failed, and the {days} days since are over', 'Pay the open invoice or correct the payment method: `tunnel billing portal` gives the link.'),
  BILLING_NO_PAYMENT_METHOD: entry(400, false, 'there is no payment method on file', 'Add one first: POST /billing/setup-intent gives the client secret for it.'),
  BILLING_CAP_NOT_PAYG: entry(400, false, 'a spend cap is for pay-as-you-go plans; the plan `{plan}` costs nothing for usage', 'Subscribe first: POST /billing/subscribe.'),
  BILLING_BUSY: entry(503, true, 'another billing request of this account is still under way', 'Try again after the seconds in the Retry-After header.'),
  BILLING_PROCESSOR_AWAY: entry(503, true, 'the payment processor cannot be reached right now', 'Try again after the seconds in the Retry-After header; nothing is charged twice.'),
  BILLING_PROCESSOR_REFUSED: entry(502, false, 'the payment processor refused: {reason}', 'Check the payment method in the billing portal; operators find more in the log.'),
  WEBHOOK_SIGNATURE: entry(400, false, 'the signature of the event is missing or wrong', 'Operators: compare `[platform.billing] stripe_webhook_secret` with the secret of the endpoint at the processor.'),
  IDEMPOTENCY_KEY_INVALID: entry(400, false, 'Idempotency-Key: must be 1 to {limit} printable ASCII characters', 'Send such a key, a fresh UUID for example, or none.'),
  IDEMPOTENCY_KEY_REUSED: entry(409, false, 'this Idempotency-Key was used for another request', 'Take a new key for each new request.'),
  IDEMPOTENCY_KEY_BUSY: entry(409, true, 'the request with this Idempotency-Key is still under way', 'Send it again with the same key after the seconds in the Retry-After header.'),

  // --- the client ---
  CLIENT_SERVER_UNREACHABLE: entry(503, true, 'cannot reach {server}: {reason}', 'Check --server and the network; --wait retries until it is reachable.'),
  CLIENT_SERVER_SPEAKS_TLS: entry(400, false, '{server} speaks TLS on its control port', 'Set `tls: true` (--tls).'),
  CLIENT_SERVER_SPEAKS_PLAIN: entry(400, false, '{server} does not speak TLS on its control port', 'Set `tls: false` (--no-tls) if the network between is yours.'),
  CLIENT_CERTIFICATE: entry(400, false, 'the certificate of {server} was not accepted: {reason}', 'Set `ca_file`, or use --insecure for a self-signed test server.'),
  CLIENT_NOT_AN_EDGE: entry(400, false, '{server} is not a tunnel edge: {reason}', 'Check --server: host and control port, 4040 by default.'),
  CLIENT_PROXY_UNREACHABLE: entry(503, true, 'cannot reach the proxy {proxy}: {reason}', 'Check --proxy, `proxy` of config.yml, or HTTPS_PROXY and ALL_PROXY; `--proxy none` goes without one.'),
  CLIENT_PROXY_AUTH: entry(407, false, 'the proxy {proxy} lets nobody through: {reason}', 'Give user name and password in the URL of the proxy, or as user:password in the file that `proxy_auth_file` names.'),
  CLIENT_PROXY_REFUSED: entry(403, false, 'the proxy {proxy} does not lead to {server}: {reason}', 'Ask who runs the proxy to allow CONNECT to that host and port; an edge that serves 443 is reached with --server host:443.'),
  CLIENT_API_UNREACHABLE: entry(503, true, 'cannot reach {url}: {reason}', 'Check --api, or `api_url` of config.yml, and the network.'),
  CLIENT_NOT_AN_API: entry(400, false, '{url} is not the REST of an edge: {reason}', 'Check --api, or `api_url` of config.yml: host and api_port, 4041 by default.'),
  CLIENT_PLATFORM_UNREACHABLE: entry(503, true, 'cannot reach {url}: {reason}', 'Check the network, and the address: `tunnel login --platform <url>` or `platform_url` of config.yml.'),
  CLIENT_NOT_A_PLATFORM: entry(400, false, '{url} is not a platform API: {reason}', 'Check the address: `tunnel login --platform <url>`, or `platform_url` of config.yml.'),
  CLIENT_LOGIN_NEEDED: entry(401, false, '{reason}', 'Run `tunnel login`.'),
  CLIENT_KEY_MISSING: entry(400, false, 'no API key', 'Run `tunnel login`, or set TUNNEL_API_KEY.'),
  CLIENT_FILE: entry(500, false, 'cannot use {file}: {reason}', 'Check the permissions of the file and of its folder.'),
  CLIENT_LOG_FILE: entry(500, true, 'cannot write the log file {file}: {reason}', 'The client goes on without it, and writes again when it can. Check the path, its folder and the room on the disk.'),
  CLIENT_SERVICE: entry(500, false, '{reason}', 'To see the unit alone: `tunnel service install --print`.'),
  CLIENT_MCP_SERVER: entry(500, false, 'the MCP server did not start: {reason}', 'Run the command by itself: it has to speak MCP on stdin and stdout, and log to stderr.'),
  CLIENT_TOKEN_FILE: entry(400, false, 'cannot read the token from {file}: {reason}', 'Check --token-file; for a new API key run `tunnel login`.'),
  CLIENT_USAGE: entry(400, false, '{reason}', 'See `tunnel --help`.'),
  CLIENT_NAME_INVALID: entry(400, false, "`{name}` cannot be this computer's name: {reason}", 'Use 1 to 64 printable characters.'),
  CLIENT_NOT_RUNNING: entry(404, false, 'no client is running', 'Start one: `tunnel start`, or `tunnel http 3000`.'),
  CLIENT_AMBIGUOUS: entry(409, false, '{count} clients are running: {clients}', 'Say which one with --client: its pid, or its config file.'),
  CLIENT_TUNNEL_UNKNOWN: entry(404, false, "you have no live tunnel '{tunnel}'", 'List them: `tunnel list`.'),
  CLIENT_TUNNEL_AMBIGUOUS: entry(409, false, "'{tunnel}' fits {count} live tunnels", 'Give the id of one.'),
  CLIENT_REQUEST_UNKNOWN: entry(404, false, "no live tunnel of yours has kept the request '{request}'", 'List those that were kept: `tunnel requests <tunnel>`.'),
  CLIENT_NO_ANSWER: entry(500, false, 'client {pid} does not answer: {reason}', 'Try again. If it hangs, end it: `kill {pid}`.'),
  CLIENT_EDGE_TOO_OLD: entry(400, false, 'the edge does not know {protocol} tunnels', 'Update the edge.'),
  CLIENT_P2P_SECRET_SHORT: entry(400, false, 'the p2p secret is too short: at least {limit} bytes (tunnel p2p secret makes one)', 'Make one with `tunnel p2p secret`, and give it to both ends.'),
  CLIENT_P2P_SECRET_LONG: entry(400, false, 'the p2p secret is too long: at most {limit} bytes', 'Make one with `tunnel p2p secret`, and give it to both ends.'),
  CLIENT_P2P_SECRET_MISSING: entry(400, false, 'no p2p secret', 'Use --secret-file, --secret-env or TUNNEL_P2P_SECRET; in config.yml `p2p_secret_file`, `p2p_secret_env` or `p2p_secret`.'),
  CLIENT_P2P_SECRET_FILE: entry(400, false, 'cannot read the p2p secret from {file}: {reason}', 'Check --secret-file, or `p2p_secret_file` of config.yml.'),
  CLIENT_PEER_DIAL: entry(502, true, "the service of '{name}' was not reached: {reason}", 'Try again. The other end may be away, or its local service down.'),
  CLIENT_CLOSED: entry(410, false, 'the client is closed', 'Connect again.'),
  CLIENT_LOCAL_DIAL: entry(502, true, 'cannot connect to {target}: {reason}', 'Start the local service.'),
  CLIENT_LOCAL_FILES: entry(502, true, 'cannot serve the folder {dir}: {reason}', 'Create the folder, or name another one.'),
  CLIENT_FLOW_LIMIT: entry(503, true, 'this client holds its limit of {limit} flows', 'Visitors of udp tunnels that come now are turned away. Start another client, or give this one more open files (`ulimit -n`).'),
  CLIENT_LOCAL_CERTIFICATE: entry(502, false, 'the certificate of {target} was not accepted: {reason}', 'Give the local service a certificate that is trusted here, or set `local_tls_verify: false` (--local-tls-no-verify).'),

  // --- tools of models: the person is asked, never the model ---
  MCP_TARGET_NOT_ALLOWED: entry(403, false, 'a model may not publish {target} here (allowed: {allowed})', 'Ask the person who runs this server. To allow it: the line `- "{target}"` below `mcp.allow` of config.yml, or --allow {target}.'),
  MCP_TUNNEL_LIMIT: entry(403, false, 'this server holds its limit of {limit} tunnels', 'Close one that is not needed with close_tunnel.'),
  MCP_P2P_SECRET_MISSING: entry(400, false, 'there is no secret for p2p tunnels: TUNNEL_P2P_SECRET is not set', 'Ask the person who runs this server to set TUNNEL_P2P_SECRET in its environment; `tunnel p2p secret` makes one. No tool takes it.'),
  MCP_SCOPE_MISSING: entry(403, false, 'this token may not use {tool}: it lacks the scope {scope}', 'Connect the program again and allow it, or use an API key.'),
  MCP_CALLS_OPEN: entry(429, true, '{limit} calls of this account are open at /mcp; try again in {seconds} s', 'Wait for one of them to end, or cancel one.'),
  MCP_CALLS_THROTTLED: entry(429, true, 'this account has begun {limit} calls at /mcp within a minute; try again in {seconds} s', 'Wait. Operators: `[platform.mcp] calls_per_minute`.'),
} as const satisfies Record<string, CatalogueEntry>;

export type ErrorCode = keyof typeof CATALOGUE;

export const ERROR_CODES = Object.keys(CATALOGUE) as ErrorCode[];

export const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(CATALOGUE, code);

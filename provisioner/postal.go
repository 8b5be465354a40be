package provisioner

// PostalSchema returns the shape of Postal's message databases (github.com/postalserver/postal, 3.3.6, schema version 20).
func PostalSchema() Schema {
	return Schema{
		RawPrefix:  "raw-",
		RawLayout:  "2006-01-02",
		RawColumns: "id int NOT NULL AUTO_INCREMENT, data longblob, next int, PRIMARY KEY (id)",
		Sizes:      SizesTable{Name: "raw_message_sizes", Table: "table_name", Bytes: "size"},
		Messages: MessagesTable{
			Name:     "messages",
			ID:       "id",
			Time:     "timestamp",
			TimeKind: UnixSeconds,
			RawTable: "raw_table",
			RawIndex: "on_raw_table",
			Size:     "size",
			Held:     "held",
			Clear:    []string{"raw_headers_id", "raw_body_id", "size"},
			Probe:    "(scope IN ('incoming','outgoing') OR scope IS NULL) AND (spam IN (0,1) OR spam IS NULL)",
		},
		Children: []ChildTable{
			{Name: "clicks", MessageID: "message_id"},
			{Name: "loads", MessageID: "message_id"},
			{Name: "deliveries", MessageID: "message_id"},
			{Name: "spam_checks", MessageID: "message_id"},
			{Name: "links", MessageID: "message_id"},
		},
		Base: []BaseTable{
			{Name: "messages", Columns: postalMessages},
			{Name: "deliveries", Columns: postalDeliveries},
			{Name: "clicks", Columns: postalClicks},
			{Name: "loads", Columns: postalLoads},
			{Name: "links", Columns: postalLinks},
			{Name: "spam_checks", Columns: postalSpamChecks},
			{Name: "migrations", Columns: "version int NOT NULL, PRIMARY KEY (version)"},
			{Name: "live_stats", Columns: postalLiveStats},
			{Name: "stats_daily", Columns: postalStatsDaily},
			{Name: "suppressions", Columns: postalSuppressions},
			{Name: "webhook_requests", Columns: postalWebhookRequests},
		},
	}
}

const (
	postalMessages = `
  id int NOT NULL AUTO_INCREMENT,
  token varchar(255),
  scope varchar(10),
  rcpt_to varchar(255),
  mail_from varchar(255),
  subject varchar(255),
  message_id varchar(255),
  timestamp decimal(18,6),
  route_id int,
  domain_id int,
  credential_id int,
  status varchar(255),
  held tinyint(1) DEFAULT 0,
  size varchar(255),
  last_delivery_attempt decimal(18,6),
  raw_table varchar(255),
  raw_body_id int,
  raw_headers_id int,
  inspected tinyint(1) DEFAULT 0,
  spam tinyint(1) DEFAULT 0,
  spam_score decimal(8,2) DEFAULT 0.00,
  threat tinyint(1) DEFAULT 0,
  threat_details varchar(255),
  bounce tinyint(1) DEFAULT 0,
  bounce_for_id int DEFAULT 0,
  tag varchar(255),
  loaded decimal(18,6),
  clicked decimal(18,6),
  received_with_ssl tinyint(1),
  hold_expiry decimal(18,6),
  tracked_links int DEFAULT 0,
  tracked_images int DEFAULT 0,
  parsed tinyint DEFAULT 0,
  endpoint_id int,
  endpoint_type varchar(255),
  PRIMARY KEY (id),
  KEY on_message_id (message_id(8)),
  KEY on_token (token(6)),
  KEY on_bounce_for_id (bounce_for_id),
  KEY on_held (held),
  KEY on_scope_and_status (scope(1), spam, status(6), timestamp),
  KEY on_scope_and_tag (scope(1), spam, tag(8), timestamp),
  KEY on_scope_and_spam (scope(1), spam, timestamp),
  KEY on_scope_and_thr_status (scope(1), threat, status(6), timestamp),
  KEY on_scope_and_threat (scope(1), threat, timestamp),
  KEY on_rcpt_to (rcpt_to(12), timestamp),
  KEY on_mail_from (mail_from(12), timestamp),
  KEY on_raw_table (raw_table(14)),
  KEY on_status (status(8))`

	postalDeliveries = `
  id int NOT NULL AUTO_INCREMENT,
  message_id int,
  status varchar(255),
  code int,
  output varchar(512),
  details varchar(512),
  sent_with_ssl tinyint(1) DEFAULT 0,
  log_id varchar(100),
  timestamp decimal(18,6),
  time decimal(8,2),
  PRIMARY KEY (id),
  KEY on_message_id (message_id)`

	postalClicks = `
  id int NOT NULL AUTO_INCREMENT,
  message_id int,
  link_id int,
  ip_address varchar(255),
  country varchar(255),
  city varchar(255),
  user_agent varchar(255),
  timestamp decimal(18,6),
  PRIMARY KEY (id),
  KEY on_message_id (message_id),
  KEY on_link_id (link_id)`

	postalLoads = `
  id int NOT NULL AUTO_INCREMENT,
  message_id int,
  ip_address varchar(255),
  country varchar(255),
  city varchar(255),
  user_agent varchar(255),
  timestamp decimal(18,6),
  PRIMARY KEY (id),
  KEY on_message_id (message_id)`

	postalLinks = `
  id int NOT NULL AUTO_INCREMENT,
  message_id int,
  token varchar(255),
  hash varchar(255),
  url text,
  timestamp decimal(18,6),
  PRIMARY KEY (id),
  KEY on_message_id (message_id),
  KEY on_token (token(8))`

	postalSpamChecks = `
  id int NOT NULL AUTO_INCREMENT,
  message_id int,
  score decimal(8,2),
  code varchar(255),
  description varchar(255),
  PRIMARY KEY (id),
  KEY on_message_id (message_id),
  KEY on_code (code(8))`

	postalLiveStats = `
  type varchar(20) NOT NULL,
  minute int NOT NULL,
  count int,
  timestamp decimal(18,6),
  PRIMARY KEY (minute, type(8))`

	postalStatsDaily = `
  id int NOT NULL AUTO_INCREMENT,
  time int,
  incoming bigint,
  outgoing bigint,
  spam bigint,
  bounces bigint,
  held bigint,
  PRIMARY KEY (id),
  UNIQUE KEY on_time (time)`

	postalSuppressions = `
  id int NOT NULL AUTO_INCREMENT,
  type varchar(255),
  address varchar(255),
  reason varchar(255),
  timestamp decimal(18,6),
  keep_until decimal(18,6),
  PRIMARY KEY (id),
  KEY on_address (address(6)),
  KEY on_keep_until (keep_until)`

	postalWebhookRequests = `
  id int NOT NULL AUTO_INCREMENT,
  uuid varchar(255),
  event varchar(255),
  attempt int,
  timestamp decimal(18,6),
  status_code int,
  body text,
  payload text,
  will_retry tinyint,
  url varchar(255),
  webhook_id int,
  PRIMARY KEY (id),
  KEY on_uuid (uuid(8)),
  KEY on_event (event(8)),
  KEY on_timestamp (timestamp),
  KEY on_webhook_id (webhook_id)`
)

-- A store as the first version of the schema keeps it.
BEGIN TRANSACTION;
CREATE TABLE artifacts (
	hash TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	size BIGINT NOT NULL, 
	encoding TEXT NOT NULL, 
	content BLOB NOT NULL, 
	created_at DOUBLE NOT NULL, 
	PRIMARY KEY (hash)
);
INSERT INTO "artifacts" VALUES('d0044c695f618c01506cfe1ea63eb15ba1150c21fcc302d40acea345fd4710fa','gemm.c',9,'',X'696E74206D61696E3B',1700000000.0);
INSERT INTO "artifacts" VALUES('7200eb7882a546543e9ada607d10c9320f5f62b3f45bf54a27df459317d6141e','source',580,'zlib',X'789CCBCC2B51C84DCCCCD328CBCF4CD154A856284A2D292DCA5330B056A8E5CA1C951C95242C09004A89C081',1700000000.0);
CREATE TABLE autotune_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT autotune_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "autotune_version" VALUES('0001');
CREATE TABLE environments (
	hash TEXT NOT NULL, 
	document TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	PRIMARY KEY (hash)
);
INSERT INTO "environments" VALUES('environment0','{"machine":{"cores":2}}',1700000000.0);
CREATE TABLE readings (
	trial_id INTEGER NOT NULL, 
	seq INTEGER NOT NULL, 
	metric TEXT NOT NULL, 
	value DOUBLE, 
	at DOUBLE, 
	discarded TEXT NOT NULL, 
	context TEXT, 
	PRIMARY KEY (trial_id, seq), 
	FOREIGN KEY(trial_id) REFERENCES trials (id)
)
 WITHOUT ROWID

;
INSERT INTO "readings" VALUES(1,0,'time',0.5,0.0,'','{"pressure":0.25}');
INSERT INTO "readings" VALUES(1,1,'time',0.501,0.1,'','{"pressure":0.25}');
INSERT INTO "readings" VALUES(1,2,'time',0.502,0.2,'','{"pressure":0.25}');
CREATE TABLE segments (
	id INTEGER NOT NULL, 
	study_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	document TEXT NOT NULL, 
	artifacts TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(study_id) REFERENCES studies (id)
);
INSERT INTO "segments" VALUES(1,1,0,'{"commit":"c0"}','{"gemm.c":"d0044c695f618c01506cfe1ea63eb15ba1150c21fcc302d40acea345fd4710fa"}','the study begins',1700000000.0);
CREATE TABLE sessions (
	id INTEGER NOT NULL, 
	study_id INTEGER NOT NULL, 
	settings TEXT NOT NULL, 
	environment_hash TEXT NOT NULL, 
	pid BIGINT NOT NULL, 
	host TEXT NOT NULL, 
	started_at DOUBLE NOT NULL, 
	finished_at DOUBLE, 
	reason TEXT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(study_id) REFERENCES studies (id)
);
INSERT INTO "sessions" VALUES(1,1,'{"seed":0}','environment0',4711,'host0',1700000000.0,NULL,'');
CREATE TABLE space_revisions (
	id INTEGER NOT NULL, 
	study_id INTEGER NOT NULL, 
	replaced_at DOUBLE NOT NULL, 
	spec_text TEXT NOT NULL, 
	document TEXT NOT NULL, 
	space_hash TEXT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(study_id) REFERENCES studies (id)
);
CREATE TABLE studies (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	spec_text TEXT NOT NULL, 
	document TEXT NOT NULL, 
	space_hash TEXT NOT NULL, 
	objective TEXT NOT NULL, 
	workload TEXT NOT NULL, 
	metrics TEXT NOT NULL, 
	machine_key TEXT NOT NULL, 
	environment_hash TEXT NOT NULL, 
	replayed BOOLEAN NOT NULL, 
	parent_id INTEGER, 
	differs TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	next_number INTEGER NOT NULL, 
	next_told INTEGER NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(parent_id) REFERENCES studies (id)
);
INSERT INTO "studies" VALUES(1,'gemm','key0','autotune: 1
name: gemm
','{"identity":{"machine":"m"},"space":{"knobs":[]}}','space0','python gemm.py:Gemm','{"m":960,"dtype":"float32"}','[{"name":"time","goal":"minimize","unit":"s"}]','machine0','environment0',0,NULL,'{}',1700000000.0,3,2);
CREATE TABLE trials (
	id INTEGER NOT NULL, 
	study_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	session_id INTEGER NOT NULL, 
	segment_id INTEGER NOT NULL, 
	purpose TEXT NOT NULL, 
	configuration TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	status TEXT NOT NULL, 
	strategy TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	ask INTEGER NOT NULL, 
	knew INTEGER NOT NULL, 
	told INTEGER, 
	attempt INTEGER NOT NULL, 
	worker TEXT NOT NULL, 
	lease_until DOUBLE NOT NULL, 
	proposed_at DOUBLE NOT NULL, 
	started_at DOUBLE, 
	finished_at DOUBLE, 
	phases TEXT NOT NULL, 
	metrics TEXT NOT NULL, 
	reading_count INTEGER NOT NULL, 
	message TEXT NOT NULL, 
	phase TEXT NOT NULL, 
	exit_code BIGINT, 
	signal INTEGER, 
	peak_memory BIGINT, 
	stderr TEXT NOT NULL, 
	facts TEXT NOT NULL, 
	environment_hash TEXT NOT NULL, 
	artifacts TEXT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(study_id) REFERENCES studies (id), 
	FOREIGN KEY(session_id) REFERENCES sessions (id), 
	FOREIGN KEY(segment_id) REFERENCES segments (id)
);
INSERT INTO "trials" VALUES(1,1,0,1,1,'search','{"tile":1,"layout":"row","order":["i","j"],"place":{"embed":0}}','a796b2f6ce0d85ce','ok','random','{"strategy":"random","kind":"random","parent":null}',3,2,0,1,'worker-1',1700000060.0,1700000000.0,1700000000.0,1700000000.0,'{"prepare":0.25,"measure":0.5}','{"time":{"value":0.5,"low":0.45,"high":0.55,"n":3,"error":0.01}}',3,'','',NULL,NULL,NULL,'','{}','environment0','{}');
INSERT INTO "trials" VALUES(2,1,1,1,1,'search','{"tile":2,"layout":"row","order":["i","j"],"place":{"embed":0}}','64d3e39abce0659a','crashed','random','{"strategy":"random","kind":"random","parent":null}',3,2,1,1,'worker-1',1700000060.0,1700000000.0,NULL,1700000000.0,'{"prepare":0.25,"measure":0.5}','{}',0,'it ended as crashed','',NULL,11,NULL,'Segmentation fault
','{}','environment0','{"source":"7200eb7882a546543e9ada607d10c9320f5f62b3f45bf54a27df459317d6141e"}');
INSERT INTO "trials" VALUES(3,1,2,1,1,'search','{"tile":3,"layout":"row","order":["i","j"],"place":{"embed":0}}','e2bb76b4461e8b21','waiting','random','{"strategy":"random","kind":"random","parent":null}',3,2,NULL,1,'',1700000060.0,1700000000.0,NULL,NULL,'{}','{}',0,'','',NULL,NULL,NULL,'','{}','','{}');
CREATE TABLE verdicts (
	id INTEGER NOT NULL, 
	study_id INTEGER NOT NULL, 
	session_id INTEGER NOT NULL, 
	document TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(study_id) REFERENCES studies (id), 
	FOREIGN KEY(session_id) REFERENCES sessions (id)
);
INSERT INTO "verdicts" VALUES(1,1,1,'{"speedup":{"estimate":1.25}}',1700000000.0);
CREATE INDEX studies_by_name ON studies (name, "key");
CREATE INDEX space_revisions_by_study ON space_revisions (study_id);
CREATE UNIQUE INDEX segments_by_number ON segments (study_id, number);
CREATE INDEX sessions_by_study ON sessions (study_id);
CREATE INDEX verdicts_by_study ON verdicts (study_id);
CREATE UNIQUE INDEX trials_by_number ON trials (study_id, number);
CREATE UNIQUE INDEX trials_by_told ON trials (study_id, told);
CREATE UNIQUE INDEX trials_searched_once ON trials (study_id, hash) WHERE purpose = 'search';
CREATE INDEX trials_open ON trials (study_id) WHERE status IN ('waiting', 'running');
CREATE INDEX trials_by_status ON trials (study_id, purpose, status);
COMMIT;

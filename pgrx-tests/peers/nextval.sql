-- name: `nextval()`, increment 2 on two servers
-- id: nextval('ids')
-- Each server has its own remainder, as in Flickr's scheme.
CREATE SEQUENCE ids INCREMENT 2 START :node;
